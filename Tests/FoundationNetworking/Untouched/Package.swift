// swift-tools-version: 5.9
// A package as there are many: for all platforms, and of Larkspur it knows nothing.

import PackageDescription

let package = Package(
  name: "Untouched",
  products: [.library(name: "Untouched", targets: ["Untouched"])],
  targets: [
    .target(name: "Untouched", swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")])
  ]
)
