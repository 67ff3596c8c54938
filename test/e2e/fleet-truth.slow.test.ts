import { fleetTruth } from "./fleet-truth";

fleetTruth(40, 7);
