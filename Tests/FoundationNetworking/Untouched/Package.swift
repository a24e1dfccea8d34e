// swift-tools-version: 5.9
// A package for all platforms that does not know of Larkspur, as many packages are.

import PackageDescription

let package = Package(
  name: "Untouched",
  products: [.library(name: "Untouched", targets: ["Untouched"])],
  targets: [
    .target(name: "Untouched", swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")])
  ]
)
