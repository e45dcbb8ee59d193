// An OpenID provider on loopback: npm's oidc-provider, with one client by secret and one by signed assertion.
//
// Started as: node identity_provider.js PORT JWKS_OF_THE_ASSERTING_CLIENT ACCESS_TOKEN_SECONDS
// Prints "ready" when it listens. A new signing key replaces the old one when a line arrives on standard input.
import { generateKeyPair, exportJWK } from 'jose';
import http from 'node:http';
import readline from 'node:readline';
import Provider from 'oidc-provider';

const [port, clientKeys, seconds] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
let made = 0;

async function provider() {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), use: 'sig', alg: 'RS256', kid: `key-${(made += 1)}` };
  return new Provider(issuer, {
    clients: [
      {
        client_id: 'alice',
        client_secret: 'alice-secret',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: 'signer',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: JSON.parse(clientKeys),
      },
    ],
    jwks: { keys: [key] },
    scopes: ['produce'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:kafka',
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'produce',
          audience: 'kafka',
          accessTokenFormat: 'jwt',
          accessTokenTTL: Number(seconds),
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
}

let handle = (await provider()).callback();
http
  .createServer((request, response) => handle(request, response))
  .listen(Number(port), '127.0.0.1', () => console.log('ready'));
readline.createInterface({ input: process.stdin }).on('line', async () => {
  handle = (await provider()).callback();
  console.log('ready');
});
