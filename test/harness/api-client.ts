/** An answer of the API with an error status. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly body: { code: string; message: string } & Record<string, unknown>,
  ) {
    super(`${status} ${body.code}: ${body.message}`);
  }
}

export interface Answer<T> {
  status: number;
  headers: Headers;
  body: T;
}

/** Checks each answer and the body of its request. Throws if one breaks the contract. */
export type Inspect = (method: string, path: string, answer: Answer<unknown>, asked: unknown) => Promise<void>;

/**
 * Writes requests by hand, for tests: it sends exactly what it is told, also what no client should send, and shows each answer as it is.
 * Everything that only uses the API takes the typed client (client/api).
 */
export class ApiClient {
  constructor(
    readonly baseUrl: string,
    readonly token?: string,
    private readonly inspect?: Inspect,
    private readonly organizationId?: string,
  ) {}

  as(token: string | undefined): ApiClient {
    return new ApiClient(this.baseUrl, token, this.inspect);
  }

  /** Returns a client with the same credential that acts in one of its organizations. */
  in(organizationId: string): ApiClient {
    return new ApiClient(this.baseUrl, this.token, this.inspect, organizationId);
  }

  get<T>(path: string): Promise<T> {
    return this.succeed<T>('GET', path);
  }

  post<T>(path: string, body?: unknown): Promise<T> {
    return this.succeed<T>('POST', path, body);
  }

  put<T>(path: string, body?: unknown): Promise<T> {
    return this.succeed<T>('PUT', path, body);
  }

  delete<T>(path: string): Promise<T> {
    return this.succeed<T>('DELETE', path);
  }

  /** Sends a request and returns any answer, including a refusal. */
  async request<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(this.baseUrl + path, {
      method,
      headers: {
        ...(this.token ? { Authorization: `Bearer ${this.token}` } : {}),
        ...(this.organizationId ? { 'X-Org-Id': this.organizationId } : {}),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const answer = {
      status: response.status,
      headers: response.headers,
      body: bodyOf(response, text) as T,
    };
    await this.inspect?.(method, path, answer, body);
    return answer;
  }

  private async succeed<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.request<T>(method, path, body);
    if (answer.status >= 400) throw new ApiError(answer.status, answer.body as ApiError['body']);
    return answer.body;
  }
}

/** The fields of an instance that scripts use. */
export interface InstanceBody {
  id: string;
  status: string;
  ssh_host: string | null;
  ssh_port: number | null;
  ssh_user: string;
  error_code: string | null;
  error_message: string | null;
  allowed_actions: string[];
  spend_micro: number;
  [field: string]: unknown;
}

function bodyOf({ headers }: Response, text: string): unknown {
  if (text === '') return null;
  return headers.get('content-type')?.startsWith('application/json') === true ? JSON.parse(text) : text;
}
