import { containersOf, imageVolumesOf, PODS } from "./pod-containers";
import { allowedIn, isAllowed, listVariables, type Restriction } from "./restriction";

const imagesOf = (object: string) =>
  `(${object} == null ? [] : ${containersOf(object)}.map(container, container.?image.orValue('')) + ` +
  `${imageVolumesOf(object)}.map(image, image.?reference.orValue('')))`;

/**
 * The registry of an image. Its first part is one when it can be a host: with a dot, a port or a capital, or `localhost`,
 * as container runtimes read it (distribution/reference, `splitDockerDomain`). What has none is Docker's.
 */
const registryOf = (image: string) =>
  `(${image}.contains('/') && ${image}.split('/')[0].matches('[.:A-Z]|^localhost$') ? ${image}.split('/')[0] : 'docker.io')`;

/** Images of all containers and image volumes come from allowed registries. An image that a Pod has already may stay. */
export const containerRegistries: Restriction = {
  appliesTo: ({ spec }) => spec.containerRegistries !== undefined,
  rules: PODS,
  variables: {
    ...listVariables("containerRegistries"),
    imagesBefore: imagesOf("oldObject"),
    refusedRegistries: `${imagesOf("object")}.filter(image, !(image in variables.imagesBefore)).map(image, ${registryOf("image")}).filter(registry, !${isAllowed("containerRegistries", "registry")})`,
  },
  validations: [
    {
      expression: "!variables.containerRegistriesRestricted || size(variables.refusedRegistries) == 0",
      messageExpression: `'the registry ' + variables.refusedRegistries[0] + ' is not allowed' + ${allowedIn("containerRegistries")}`,
    },
  ],
};
