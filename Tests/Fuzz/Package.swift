// swift-tools-version: 6.2
import PackageDescription

// Fuzz targets are a package of their own: they have no `main` outside of `--sanitize fuzzer`, so that in the main package they
// would break the build.

/// Each target at `Sources/<name>`, with the products of the main package that it uses.
let fuzzTargets: [(name: String, products: [String])] = [
    ("FuzzDNSFraming", ["DNSMessage"]),
    ("FuzzDNSMessage", ["DNSMessage"]),
    ("FuzzDNSRewriting", ["DNSMessage", "DNSProxy", "Provider"]),
    ("FuzzDoH", ["DNSProxy", "EncryptedDNS", "Provider"]),
    ("FuzzDoHServer", ["EncryptedDNS"]),
    ("FuzzHostsFile", ["DNSMessage", "DNSProxy", "Provider"]),
    ("FuzzIPPacket", ["IPPacket"]),
    ("FuzzJSON5", ["JSON5"]),
    ("FuzzLDNSMessage", ["DNSMessage", "LDNSMessage"]),
    ("FuzzOpenMetrics", ["OpenMetrics"]),
    ("FuzzQuickConfiguration", ["PacketTunnel", "WireGuard"]),
    ("FuzzSegmentation", ["IPPacket"]),
    ("FuzzUAPI", ["WireGuard", "OpenSSLCrypto"]),
    ("FuzzWireGuard", ["WireGuard", "OpenSSLCrypto", "SimulatedHost"]),
]

let settings: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "Fuzz",
    platforms: [.macOS(.v26)],
    products: fuzzTargets.map { .executable(name: $0.name, targets: [$0.name]) },
    dependencies: [.package(name: "sluice", path: "../..")],
    targets: [.target(name: "FuzzSupport", swiftSettings: settings)]
        + fuzzTargets.map { target in
            .executableTarget(
                name: target.name,
                dependencies: ["FuzzSupport"] + target.products.map { .product(name: $0, package: "sluice") },
                // libFuzzer brings `main`.
                swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])])
        }
)
