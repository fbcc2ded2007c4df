// An identity provider: oidc-provider, as its documentation sets it up, with one client. It never
// asks: the user is the one whom the cookie "user" names, or "user". The argument is {addr, redirect}
// in JSON.
import { Provider } from 'oidc-provider';

const { addr, redirect } = JSON.parse(process.argv[2]);
const provider = new Provider(`http://${addr}`, {
  clients: [{ client_id: 'broker', client_secret: 'upstream-secret', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'] }],
  claims: { email: ['email', 'email_verified'], profile: ['name'] },
  cookies: { keys: ['interop'] },
  features: { devInteractions: { enabled: false } },
  rotateRefreshToken: true,
  findAccount: (ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId, name: accountId, email: `${accountId}@example.com`, email_verified: true }) }),
});
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next();
  const { params } = await provider.interactionDetails(ctx.req, ctx.res);
  const accountId = ctx.cookies.get('user') ?? 'user';
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  await provider.interactionFinished(ctx.req, ctx.res, { login: { accountId }, consent: { grantId: await grant.save() } });
  ctx.respond = false;
});
const [host, port] = addr.split(':');
provider.listen(Number(port), host);
process.on('SIGTERM', () => process.exit());
