// A program that uses the types as those of sdk/typescript are meant to be used; what must
// not be accepted is marked, and the compiler misses it where it is.
import type { Accepted, ChatAnswer, Meta, Problem, SkillFailure, SkillSuccess, UploadResult, paths } from "./openskill";

type Operation = { answers: Record<number, unknown> | { [status: string]: unknown } };
type Good<O extends Operation> = O["answers"][Extract<keyof O["answers"], 200 | 201 | 202>];

type Invoke = paths["/skills/{id}:invoke"]["POST"];

async function invoke(base: string, id: Invoke["path"]["id"], body: Invoke["body"]): Promise<Good<Invoke>> {
  const answer = await fetch(`${base}/skills/${encodeURIComponent(id)}:invoke`, { method: "POST", body: JSON.stringify(body) });
  if (!answer.ok) {
    const failed = (await answer.json()) as SkillFailure;
    throw new Error(`${failed.error.code}: ${failed.error.message}`);
  }
  return (await answer.json()) as Good<Invoke>;
}

export async function use(): Promise<number> {
  const r: SkillSuccess | Accepted = await invoke("http://127.0.0.1:8000", "echo", { input: { text: "hi" }, limits: { fuel: 1000 } });
  if ("status" in r) {
    const status: "running" | "queued" = r.status;
    return status.length;
  }
  const ok: true = r.success;
  const none: null = r.error;
  const meta: Meta = r.meta;
  // @ts-expect-error a call needs an input
  await invoke("http://127.0.0.1:8000", "echo", {});
  // @ts-expect-error there is no such limit
  await invoke("http://127.0.0.1:8000", "echo", { input: {}, limits: { cpu: 1 } });
  // @ts-expect-error data may be anything, and is nothing that is known
  r.data.echoed;
  return ok && none === null ? meta.latency_ms : 0;
}

export function other(chat: ChatAnswer, upload: UploadResult, problem: Problem): string[] {
  const calls: boolean[] = chat.tool_calls.map((c) => c.success);
  // @ts-expect-error a state that no upload has
  const wrong: boolean = upload.state === "removed";
  return [problem.error.code, upload.state, String(calls.length), String(wrong)];
}
