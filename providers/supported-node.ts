import { RunError } from "@pulumi/pulumi/errors";
import { unsupportedNode } from "./node-version";

// Imported before all else by what a program of Pulumi or a test loads: the libraries fail on an older Node.js with errors of
// their own. Pulumi shows this error without a trace.
const reason = unsupportedNode();
if (reason !== undefined) throw new RunError(`kindstack: ${reason}`);
