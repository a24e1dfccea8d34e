// swift-tools-version: 6.2
// The FoundationNetworking peer of the benchmarks. A package of its own, because Larkspur's package never links
// FoundationNetworking.

import PackageDescription

let package = Package(
  name: "FoundationNetworkingClient",
  products: [
    .executable(name: "foundation-networking-client", targets: ["FoundationNetworkingClient"]),
    .executable(name: "foundation-networking-fetch", targets: ["Fetch"]),
  ],
  targets: [
    .executableTarget(name: "FoundationNetworkingClient"),
    .executableTarget(name: "Fetch"),
  ]
)
