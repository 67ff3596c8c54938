import { fleetTruth } from "./fleet-truth";

// Renames a field for a version with another conversion, drops the former version, and returns to it.
fleetTruth(3, 253);
