-- For wrk: sends the lines of a file one after the other, and prints what was measured as a line of JSON.
local bodies, place = {}, 0

function init(arguments)
  for line in io.lines(arguments[1]) do bodies[#bodies + 1] = line end
  place = math.floor(tonumber(arguments[2] or "0"))
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  place = place % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[place])
end

function done(summary, latency)
  local e = summary.errors
  print(string.format(
    '{"requests": %d, "seconds": %.6f, "failed": %d, "p50": %.3f, "p95": %.3f, "p99": %.3f, "longest": %.3f}',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
