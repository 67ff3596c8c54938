import { fleetTruth } from "./fleet-truth";

fleetTruth(3, 64);
