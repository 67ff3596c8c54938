import { RunError } from "@pulumi/pulumi/errors";
import { unsupportedNode } from "../../providers/node-version";
import { engines } from "./package";

// Imported before all else: the libraries fail on an older Node.js with errors of their own. Pulumi shows this one as a sentence.
const reason = unsupportedNode(process.versions.node, engines.node);
if (reason !== undefined) throw new RunError(reason);
