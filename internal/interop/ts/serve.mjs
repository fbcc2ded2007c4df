// Runs a test server. The argument is {sdk, transport, addr} in JSON.
import { createServer } from 'node:http';

const { sdk, transport, addr } = JSON.parse(process.argv[2]);
const { http, stdio } = await import(sdk.endsWith('/sdk') ? './server-sdk.mjs' : './server-v2.mjs');

if (transport === 'stdio') {
  await stdio();
} else {
  const [host, port] = addr.split(':');
  const web = createServer((req, res) =>
    http(req, res).catch((e) => {
      console.error(e);
      if (!res.headersSent) res.writeHead(500);
      res.end();
    }),
  );
  web.listen(Number(port), host);
  process.on('SIGTERM', () => {
    web.close(() => process.exit(0));
    web.closeAllConnections();
  });
}
