/** A call that Docker has not answered for `ms`; `what` completes the sentence "Docker did not ...". */
export interface UnansweredCall {
  instanceId: string;
  what: string;
  ms: number;
}
