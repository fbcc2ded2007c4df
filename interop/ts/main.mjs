// Runs the story with one of the TypeScript SDKs. The argument is JSON, see run.mjs:
// {sdk, transport, version, negotiation, fixture, notes}; a server is {url} or {command, args}.
import { end } from './report.mjs';
import { story } from './story.mjs';

const task = JSON.parse(process.argv[2]);
await story(await import(`./${task.sdk}.mjs`), task);
end();
