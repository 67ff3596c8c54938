export { apiKey } from "./api-key/kind";
export { appDatabase } from "./app-database/kind";
export { webService } from "./web-service/kind";
