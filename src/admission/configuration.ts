import type { Manifest } from "../../providers/kubernetes/client";
import { type AdmissionWebhook, type KindAdmission, webhookConfigurationKind } from "../../stacks/contract/admission";
import type { WebhookClient } from "../../stacks/contract/crd";

export type AdmissionLocation =
  /** Outside the cluster: `https://127.0.0.1:8443`, without a path. */
  | { url: string }
  /** In the cluster. */
  | { service: { namespace: string; name: string; port: number } };

/** The admission of one kind, or of objects of all kinds. */
export interface NamedAdmission {
  /** Of its webhook configurations, and in paths: unique in a cluster. */
  name: string;
  admission: KindAdmission;
}

export function webhookPath(name: string, webhook: AdmissionWebhook): string {
  return `/admission/${name}/${webhook.name}`;
}

/** The host names and addresses that the server's certificate must cover. */
export function locationNames(location: AdmissionLocation): string[] {
  if ("url" in location) return [new URL(location.url).hostname.replace(/^\[|\]$/g, "")];
  const { name, namespace } = location.service;
  return [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`];
}

/**
 * The webhook configurations of an admission: one object for each type of webhook that it has.
 *
 * @param clientOf how the API server reaches a path of the operator
 */
export function webhookConfigurations(
  { name, admission }: NamedAdmission,
  clientOf: (path: string) => WebhookClient,
): Manifest[] {
  const all = admission.webhooks();
  return (["mutating", "validating"] as const).flatMap((type) => {
    const webhooks = all.filter((webhook) => webhook.type === type);
    if (webhooks.length === 0) return [];
    return {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: webhookConfigurationKind(type),
      metadata: { name },
      webhooks: webhooks.map((webhook) => {
        const { type: _, review, ...declared } = webhook;
        return {
          ...declared,
          admissionReviewVersions: ["v1"],
          matchPolicy: "Equivalent",
          // The webhook is called again when a later one changes the object.
          ...(type === "mutating" && { reinvocationPolicy: "IfNeeded" }),
          clientConfig: clientOf(webhookPath(name, webhook)),
        };
      }),
    };
  });
}

/** How the API server reaches a path of the operator, in the form of all webhooks. @param caBundle as PEM */
export function clientConfig(location: AdmissionLocation, path: string, caBundle: string): WebhookClient {
  const trust = { caBundle: Buffer.from(caBundle).toString("base64") };
  if ("url" in location) return { url: `${location.url.replace(/\/$/, "")}${path}`, ...trust };
  return { service: { ...location.service, path }, ...trust };
}
