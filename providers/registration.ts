import { AsyncLocalStorage } from "node:async_hooks";
import * as grpc from "@grpc/grpc-js";
import { getAllResources, isSecret, output } from "@pulumi/pulumi/output";
import type { ResourceMonitorClient } from "@pulumi/pulumi/proto/resource_grpc_pb";
import { RegisterResourceRequest, type RegisterResourceResponse, Result } from "@pulumi/pulumi/proto/resource_pb";
import type { Resource } from "@pulumi/pulumi/resource";
import { Struct } from "google-protobuf/google/protobuf/struct_pb";
import { isWrapped } from "./literal";

/** What a program says of one resource. */
export interface Declaration {
  /** Pulumi's type token. */
  type: string;
  name: string;
  /** A component has none. */
  inputs?: object;
  /** The stack, if there is none. */
  parent?: Resource | undefined;
  dependsOn?: readonly Resource[];
}

/** The engine ended before it knew of a resource; it has told why. */
export class NotRegisteredError extends Error {}

const STACK_TYPE = "pulumi:pulumi:Stack";
const ENGINE_ENDED: readonly unknown[] = [grpc.status.UNAVAILABLE, grpc.status.CANCELLED];

/**
 * Registers what a program declares at the engine that runs it, with one message each.
 *
 * The SDK's resources do the same with promises and stack traces for each property: two thirds of the CPU time that an
 * update of many rows took. And an error of theirs is an unhandled rejection, which fails all updates of the process.
 */
export class Registrations {
  readonly #monitor: ResourceMonitorClient;
  readonly #urnPrefix: string;
  readonly #stack: Promise<string>;
  readonly #urns: Promise<string>[] = [];
  /** By URN, how to end the wait for the engine's answer. */
  readonly #waiting = new Map<string, (reason: NotRegisteredError) => void>();

  constructor(monitor: ResourceMonitorClient, { project, stack }: { project: string; stack: string }) {
    this.#monitor = monitor;
    this.#urnPrefix = `urn:pulumi:${stack}::${project}::`;
    this.#stack = this.#keep(this.#send(requestOf({ type: STACK_TYPE, name: `${project}-${stack}` })));
  }

  register(declaration: Declaration): Resource {
    return registered(declaration.name, this.#keep(this.#register(declaration)));
  }

  /** Waits no longer for a resource that the engine will not answer for, as it could not delete its predecessor. */
  abandon(urn: string): void {
    this.#waiting.get(urn)?.(new NotRegisteredError(`${urn} was not replaced`));
  }

  /**
   * Resolves when the engine has dealt with all that was registered.
   *
   * @throws NotRegisteredError
   */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#urns);
    await Promise.all(this.#urns);
  }

  async #register(declaration: Declaration): Promise<string> {
    const { name, inputs, parent, dependsOn = [] } = declaration;
    const request = requestOf(declaration);
    if (inputs !== undefined) {
      const plain = isWrapped(inputs) ? await unwrap(name, inputs) : inputs;
      request.setObject(Struct.fromJavaScript(JSON.parse(JSON.stringify(plain)))); // without what is undefined
    }
    request.setParent(await (parent === undefined ? this.#stack : urnOf(parent)));
    if (dependsOn.length > 0) {
      request.setDependenciesList(await Promise.all(dependsOn.map(urnOf)));
      // Without this, the engine assumes that every property depends on all these resources: when one of them is
      // replaced, it replaces this one too, with unknown properties.
      for (const property of Object.keys(inputs ?? {})) {
        request.getPropertydependenciesMap().set(property, new RegisterResourceRequest.PropertyDependencies());
      }
    }
    return this.#send(request);
  }

  async #send(request: RegisterResourceRequest): Promise<string> {
    const name = request.getName();
    const expected = `${this.#urnPrefix}${qualifiedType(request)}::${name}`;
    const response = await new Promise<RegisterResourceResponse>((resolve, reject) => {
      this.#waiting.set(expected, reject);
      this.#monitor.registerResource(request, (error, answer) => (error ? reject(error) : resolve(answer)));
    })
      .catch((error: grpc.ServiceError | NotRegisteredError) => {
        const hasEnded = "code" in error && ENGINE_ENDED.includes(error.code);
        throw hasEnded ? new NotRegisteredError(`${name}: the engine has ended`) : error;
      })
      .finally(() => this.#waiting.delete(expected));
    // The engine continues with what does not depend on what failed, skips what does, and fails in the end; a program that
    // ended here would keep it from deleting what is not registered any more.
    const urn = response.getUrn();
    if (urn === "" && response.getResult() !== Result.SUCCESS) throw new NotRegisteredError(`${name} was not made`);
    return urn;
  }

  #keep(urn: Promise<string>): Promise<string> {
    this.#urns.push(urn);
    urn.catch(() => undefined); // `settled` tells
    return urn;
  }
}

const current = new AsyncLocalStorage<Registrations>();

/** Where a program that runs registers its resources; `undefined` where the SDK does that. */
export function currentRegistrations(): Registrations | undefined {
  return current.getStore();
}

/**
 * Runs a program whose resources are registered there.
 *
 * @throws what the program throws, else NotRegisteredError
 */
export async function withRegistrations(
  registrations: Registrations,
  program: () => void | Promise<void>,
): Promise<void> {
  try {
    await current.run(registrations, program);
  } finally {
    await registrations.settled().catch(() => undefined);
  }
  await registrations.settled();
}

function requestOf({ type, name, inputs }: Declaration): RegisterResourceRequest {
  return new RegisterResourceRequest()
    .setType(type)
    .setName(name)
    .setCustom(inputs !== undefined)
    .setAcceptsecrets(true)
    .setAcceptresources(true)
    .setSupportspartialvalues(true)
    .setAliasspecs(true)
    .setSupportsresultreporting(true);
}

/** A resource's type below its parent's, as it stands in its URN. */
function qualifiedType(request: RegisterResourceRequest): string {
  const parentType = request.getParent().split("::")[2] ?? STACK_TYPE;
  return parentType === STACK_TYPE ? request.getType() : `${parentType}$${request.getType()}`;
}

const PLAIN = "programs of kinds give their resources plain values, and say with dependsOn what has to be there before";
const URN = Symbol("the URN of a registered resource");

interface Registered extends Resource {
  [URN]: Promise<string>;
}

/** What a program has in its hands: something to depend on, without outputs. */
function registered(name: string, urn: Promise<string>): Resource {
  return new Proxy({ [URN]: urn } as Registered, {
    get(target, property) {
      if (typeof property === "symbol" || property === "constructor") return Reflect.get(target, property);
      throw new TypeError(
        `the program reads the output ${JSON.stringify(property)} of ${JSON.stringify(name)}: ${PLAIN}`,
      );
    },
  });
}

function urnOf(resource: Resource): Promise<string> {
  const { [URN]: urn } = resource as Partial<Registered>;
  if (urn === undefined) throw new TypeError(`a resource that another update or the SDK registered: ${PLAIN}`);
  return urn;
}

/** @throws TypeError for outputs of resources, on which the resource would depend, and for secrets */
async function unwrap(name: string, inputs: object): Promise<object> {
  const wrapped = output(inputs);
  if ((await getAllResources(wrapped)).size > 0 || (await isSecret(wrapped))) {
    throw new TypeError(`the inputs of ${JSON.stringify(name)} are a resource's outputs or secret: ${PLAIN}`);
  }
  return new Promise((resolve) => wrapped.apply((values) => resolve(values as object)));
}
