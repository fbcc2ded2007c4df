// Runs the scenario with one of the TypeScript client SDKs. The argument is {sdk, transport,
// version, negotiation, fixture, notes} in JSON. A server is {url} or {command, args}.
import { end } from './report.mjs';
import { scenario } from './scenario.mjs';

const task = JSON.parse(process.argv[2]);
await scenario(await import(task.sdk === 'sdk' ? './client-sdk.mjs' : './client-v2.mjs'), task);
end();
