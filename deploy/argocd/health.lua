-- Health of Kindstack's objects in Argo CD: resource.customizations.health.<group>_<kind> of the ConfigMap argocd-cm.
local conditions = {}
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  conditions[condition.type] = condition
end
local function health(status, condition)
  return { status = status, message = condition and (condition.reason .. ": " .. condition.message) or "" }
end

local ready, synced, reconciling, stalled, paused =
  conditions.Ready, conditions.Synced, conditions.Reconciling, conditions.Stalled, conditions.Paused
if synced ~= nil and synced.reason == "WaitsForApproval" and synced.observedGeneration == obj.metadata.generation then
  return health("Suspended", synced)
end
if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", ready)
end
if paused ~= nil and paused.status == "True" then
  return health("Suspended", paused)
end
if ready == nil or ready.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "waiting for the operator" }
end
if stalled ~= nil and stalled.status == "True" then
  return health("Degraded", stalled)
end
if synced ~= nil and synced.reason == "Observed" then
  return health("Suspended", synced)
end
if ready.status == "True" and (reconciling == nil or reconciling.status ~= "True") then
  return health("Healthy", ready)
end
if ready.status == "False" and (synced == nil or synced.status ~= "True") then
  return health("Degraded", ready)
end
return health("Progressing", reconciling or ready)
