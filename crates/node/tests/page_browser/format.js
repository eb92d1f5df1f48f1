// Figures and endpoint IDs as text, from the module of the page.
import("/page/format.js").then((format) => JSON.stringify({
  bytes: [0, 999, 1000, 12_345, 999_999, 1_000_000, 5_000_000_000].map(format.bytes),
  rates: [0, 1, 150, 1200, 125_000].map(format.rate),
  durations: [0, 0.4, 59, 60, 3599, 3600, 86_399, 90_000, Infinity].map(format.duration),
  nodes: ["dtn://bob/files", "dtn://bob/", "ipn:7.1", "ipn:977000.7.2", "dtn:none", "", "mailto:x"].map(format.nodeOf),
  entered: ["bob", " bob ", "dtn://bob", "dtn://bob/files", "ipn:7.0", "ipn:7", "<b>", ""].map(format.nodeEntered),
  endpoints: [["dtn://bob/", "files"], ["dtn://bob/", "messages"], ["ipn:7.0", "files"], ["ipn:977000.7.0", "messages"]].map(([node, service]) => format.endpointOf(node, service)),
}))
