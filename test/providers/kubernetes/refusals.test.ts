import { expect, it } from "vitest";
import { ApiError } from "../../../providers/kubernetes/client";

const PODS = "/api/v1/namespaces/app/pods";

/*
 * What passes too quickly to be provoked; `refusals.integration.test.ts` has the others, in the words of a real server.
 */
it.each([
  [403, 'pods "a" is forbidden: status unknown for quota: few, resources: pods', PODS, "quota app/few"],
  [403, 'pods "a" is forbidden: not yet ready to handle request', PODS, "API server"],
  [503, "apiserver is shutting down", PODS, "API server"],
  [0, "connect ECONNREFUSED", "/apis/apps/v1/namespaces/app/deployments", "API server for apps"],
])("a refusal while a server is still to come waits: %i %s", (status, message, path, dependency) => {
  expect(new ApiError(status, "", message, { path })).toMatchObject({ errorClass: "retryable", dependency });
});

it.each([
  [422, 'Pod "a" is invalid: spec.containers: Required value'],
  [403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'],
  [403, "failed quota: few: must specify limits.cpu for: main"],
  [400, "strict decoding error: unknown field"],
])("a refusal of what was asked for stays until the request changes: %i %s", (status, message) => {
  expect(new ApiError(status, "", message, { path: PODS })).toMatchObject({
    errorClass: "terminal",
    dependency: undefined,
  });
});
