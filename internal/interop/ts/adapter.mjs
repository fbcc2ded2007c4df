// Shared by the adapters of both client SDKs.
import { later } from './check.mjs';

export const info = { name: 'interop', version: '1.0.0' };

export const capabilities = { elicitation: { form: {} }, sampling: {}, roots: { listChanged: true } };

/**
 * Records the received messages and the errors of a client. sent() resolves when each message that
 * it sent has arrived.
 */
export function record(transport, client) {
  const received = [];
  const errors = [];
  const sending = new Set();
  const send = transport.send.bind(transport);
  transport.send = (...args) => {
    const arrived = send(...args);
    const done = () => sending.delete(arrived);
    sending.add(arrived);
    arrived.then(done, done);
    return arrived;
  };
  const sent = async () => {
    while (sending.size) await Promise.allSettled(sending);
  };
  transport.onmessage = (message) => received.push(message); // the client calls this handler, too
  client.onerror = (e) => errors.push(e.message);
  return { received, errors, sent };
}

/**
 * Returns a fetch, and a promise that resolves when the server has responded to a GET with a
 * stream.
 */
export function watchedFetch() {
  const streaming = later();
  const watched = async (url, init) => {
    const response = await fetch(url, init);
    if (init?.method === 'GET' && response.ok) streaming.resolve();
    return response;
  };
  return { fetch: watched, streaming: streaming.promise };
}
