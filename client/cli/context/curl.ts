/** Fields whose values are secrets, wherever they are in a body. */
const SECRET = /^(.*_)?(token|password|code|secret|secret_value)$/;
const HIDDEN = '...';

/** Returns the curl command that sends the same request, with the token as $GPURENT_TOKEN and without other secrets. */
export async function curlOf(request: Request): Promise<string> {
  const body = request.body === null ? '' : await request.clone().text();
  const organization = request.headers.get('x-org-id');
  const key = request.headers.get('idempotency-key');
  const parts = [
    `curl ${quote(request.url)}`,
    ...(request.method === (body ? 'POST' : 'GET') ? [] : [`-X ${request.method}`]),
    ...(request.headers.has('authorization') ? ['-H "Authorization: Bearer $GPURENT_TOKEN"'] : []),
    ...(organization === null ? [] : [`-H ${quote(`X-Org-Id: ${organization}`)}`]),
    ...(key === null ? [] : [`-H ${quote(`Idempotency-Key: ${key}`)}`]),
    ...(body ? [`-H 'Content-Type: application/json' -d ${quote(withoutSecrets(body))}`] : []),
  ];
  return parts.join(' ');
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function withoutSecrets(body: string): string {
  return JSON.stringify(JSON.parse(body), function (this: unknown, key, value: unknown) {
    const isSecretEntry = key === 'value' && (this as { secret?: boolean }).secret === true;
    return typeof value === 'string' && (SECRET.test(key) || isSecretEntry) ? HIDDEN : value;
  });
}
