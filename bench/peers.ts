import { GO_OPERATOR } from "./go-operator";

/** A published figure of another operator. */
export interface Peer {
  who: string;
  what: string;
  figure: string;
  /** On what it was measured, as far as the source says. */
  setting: string;
  source: string;
}

const FLUX = "https://github.com/fluxcd/flux-benchmark/blob/main/RESULTS.md";
const FLUX_SETTING =
  "Flux 2.6.0, a runner of 16 cores, 3 nodes; kustomize-controller: 2 CPU, concurrency 20; helm-controller: 2 CPU, concurrency 10";

/** Not the same work, and not the same machines: an order of magnitude is what they tell. */
export const PEERS: readonly Peer[] = [
  { who: "Flux", what: "500 Kustomizations", figure: "2 min 2 s, 122 MiB", setting: FLUX_SETTING, source: FLUX },
  { who: "Flux", what: "1,000 Kustomizations", figure: "4 min 16 s, 175 MiB", setting: FLUX_SETTING, source: FLUX },
  { who: "Flux", what: "1,000 HelmReleases", figure: "8 min 12 s, 400 MiB", setting: FLUX_SETTING, source: FLUX },
  {
    who: "Crossplane, Terrajet providers",
    what: "one more object beside n that exist",
    figure: "about 3 × n × the time of one reconciliation",
    setting: "one process of the Terraform CLI for each reconciliation; a user's measurement with 200 objects",
    source: "https://github.com/crossplane/terrajet/issues/300",
  },
  {
    who: "Pulumi Kubernetes Operator 1",
    what: "memory while a stack is created",
    figure: "up to 2.5 GiB",
    setting: "a user's measurement",
    source: "https://github.com/pulumi/pulumi-kubernetes-operator/issues/262",
  },
  {
    who: GO_OPERATOR,
    what: "one PostgresWriter, from kubectl create to Ready",
    figure: "0.30–0.40 s, 44 MiB",
    setting:
      "controller-runtime 0.24 with its default settings: finalizer, upsert, condition, delete; 2 cores, the same kind of control plane and database",
    source: "measured for this comparison, on another machine",
  },
  {
    who: GO_OPERATOR,
    what: "500 PostgresWriters, from the first kubectl create to all Ready",
    figure: "5.9–6.8 s, including 4.4–5.6 s of kubectl create",
    setting: "as above",
    source: "measured for this comparison, on another machine",
  },
];
