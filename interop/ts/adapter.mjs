// What the adapters of both SDKs share.
import { later } from './report.mjs';

export const info = { name: 'interop', version: '1.0.0' };

export const capabilities = { elicitation: { form: {} }, sampling: {}, roots: { listChanged: true } };

/** Keeps every message that comes over a transport, and what the client could not make sense of. */
export function record(transport, client) {
  const received = [];
  const errors = [];
  transport.onmessage = (message) => received.push(message); // the client calls it, too
  client.onerror = (e) => errors.push(e.message);
  return { received, errors };
}

/** A fetch, and the promise that the server has begun to answer a GET with a stream. */
export function watchedFetch() {
  const streaming = later();
  const watched = async (url, init) => {
    const response = await fetch(url, init);
    if (init?.method === 'GET' && response.ok) streaming.resolve();
    return response;
  };
  return { fetch: watched, streaming: streaming.promise };
}
