// swift-tools-version: 6.2
import PackageDescription

/// What every module of the project is compiled with: Swift 6 mode comes with the tools version.
let settings: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A module of ours at `Sources/<layer>/<name>`.
func module(_ name: String, layer: String, dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: "Sources/\(layer)/\(name)", swiftSettings: settings)
}

/// The tests of a module, at `Tests/<layer>/<name>Tests`.
func tests(_ name: String, layer: String, dependencies: [Target.Dependency]) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: dependencies + ["TestSupport"], path: "Tests/\(layer)/\(name)Tests",
        swiftSettings: settings)
}

// Arrows point down only: Tools → Hosts → Adapters → Cores → Formats.
var targets: [Target] = [
    module("ByteAccess", layer: "Formats"),
    module("IPPacket", layer: "Formats", dependencies: ["ByteAccess"]),
    module("DNSMessage", layer: "Formats", dependencies: ["ByteAccess", "IPPacket"]),
    module("JSON5", layer: "Formats", dependencies: ["ByteAccess"]),
    module("OpenMetrics", layer: "Formats", dependencies: ["ByteAccess"]),

    module("Provider", layer: "Cores", dependencies: ["IPPacket"]),
    module("WireGuard", layer: "Cores", dependencies: ["ByteAccess", "IPPacket", "Provider"]),
    module("PacketTunnel", layer: "Cores", dependencies: ["ByteAccess", "IPPacket", "Provider", "WireGuard"]),
    module("DNSProxy", layer: "Cores", dependencies: ["ByteAccess", "IPPacket", "DNSMessage", "Provider"]),

    module(
        "SimulatedHost", layer: "Hosts",
        dependencies: ["ByteAccess", "IPPacket", "Provider", "WireGuard", "PacketTunnel"]),

    // What tests have in common; no product has it.
    .target(name: "TestSupport", dependencies: ["ByteAccess"], path: "Tests/TestSupport", swiftSettings: settings),

    tests("IPPacket", layer: "Formats", dependencies: ["ByteAccess", "IPPacket"]),
    tests("Provider", layer: "Cores", dependencies: ["IPPacket", "Provider"]),
    tests("DNSMessage", layer: "Formats", dependencies: ["ByteAccess", "IPPacket", "DNSMessage"]),
    tests("JSON5", layer: "Formats", dependencies: ["ByteAccess", "JSON5"]),
    tests("OpenMetrics", layer: "Formats", dependencies: ["ByteAccess", "OpenMetrics"]),
]

var products: [Product] = [
    .library(name: "IPPacket", targets: ["IPPacket"]),
    .library(name: "Provider", targets: ["Provider"]),
    .library(name: "DNSMessage", targets: ["DNSMessage"]),
    .library(name: "JSON5", targets: ["JSON5"]),
    .library(name: "OpenMetrics", targets: ["OpenMetrics"]),
    .library(name: "WireGuard", targets: ["WireGuard"]),
    .library(name: "PacketTunnel", targets: ["PacketTunnel"]),
    .library(name: "DNSProxy", targets: ["DNSProxy"]),
]

#if os(Linux)
    targets += [
        .systemLibrary(
            name: "COpenSSL", path: "Sources/System/COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]
        ),
        .systemLibrary(
            name: "CNetlink", path: "Sources/System/CNetlink", pkgConfig: "libnl-route-3.0",
            providers: [.apt(["libnl-3-dev", "libnl-route-3-dev"])]),
        .systemLibrary(
            name: "CLDNS", path: "Sources/System/CLDNS", pkgConfig: "ldns", providers: [.apt(["libldns-dev"])]),
        .systemLibrary(
            name: "CLibSSL", path: "Sources/System/CLibSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CNGHTTP2", path: "Sources/System/CNGHTTP2", pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"])]),
        .target(name: "CLinux", path: "Sources/System/CLinux", cSettings: [.define("_GNU_SOURCE")]),

        module("OpenSSLCrypto", layer: "Adapters", dependencies: ["ByteAccess", "WireGuard", "COpenSSL"]),
        module("SecureStream", layer: "Adapters", dependencies: ["ByteAccess", "IPPacket", "CLibSSL"]),
        module("LDNSMessage", layer: "Adapters", dependencies: ["ByteAccess", "IPPacket", "DNSMessage", "CLDNS"]),
        module(
            "EncryptedDNS", layer: "Adapters",
            dependencies: ["ByteAccess", "DNSMessage", "DNSProxy", "IPPacket", "Provider", "SecureStream", "CNGHTTP2"]),
        module(
            "LinuxHost", layer: "Hosts",
            dependencies: [
                "ByteAccess", "IPPacket", "DNSMessage", "JSON5", "OpenMetrics", "Provider", "WireGuard", "PacketTunnel",
                "DNSProxy", "OpenSSLCrypto", "LDNSMessage", "SecureStream", "EncryptedDNS", "CLinux", "CNetlink",
            ]),
        .executableTarget(
            name: "sluice", dependencies: ["LinuxHost"], path: "Sources/Tools/sluice", exclude: ["Samples"],
            swiftSettings: settings),

        tests(
            "WireGuard", layer: "Cores",
            dependencies: [
                "ByteAccess", "IPPacket", "Provider", "WireGuard", "OpenSSLCrypto", "SimulatedHost", "COpenSSL",
            ]),
        tests(
            "PacketTunnel", layer: "Cores",
            dependencies: ["ByteAccess", "IPPacket", "Provider", "WireGuard", "PacketTunnel"]),
        tests(
            "DNSProxy", layer: "Cores",
            dependencies: ["ByteAccess", "IPPacket", "DNSMessage", "Provider", "DNSProxy", "LDNSMessage"]),
        tests(
            "OpenSSLCrypto", layer: "Adapters", dependencies: ["ByteAccess", "WireGuard", "OpenSSLCrypto", "COpenSSL"]),
        tests("SecureStream", layer: "Adapters", dependencies: ["ByteAccess", "IPPacket", "SecureStream", "CLibSSL"]),
        tests(
            "EncryptedDNS", layer: "Adapters",
            dependencies: [
                "ByteAccess", "DNSMessage", "DNSProxy", "EncryptedDNS", "IPPacket", "Provider", "SecureStream",
                "CNGHTTP2",
            ]),
        tests(
            "LDNSMessage", layer: "Adapters",
            dependencies: ["ByteAccess", "IPPacket", "DNSMessage", "LDNSMessage", "CLDNS"]),
        tests(
            "LinuxHost", layer: "Hosts",
            dependencies: [
                "ByteAccess", "IPPacket", "DNSMessage", "JSON5", "OpenMetrics", "Provider", "WireGuard", "PacketTunnel",
                "DNSProxy", "OpenSSLCrypto", "SecureStream", "EncryptedDNS", "LinuxHost", "CLinux",
            ]),
        tests("sluice", layer: "Tools", dependencies: ["DNSProxy", "LinuxHost", "PacketTunnel", "sluice"]),
        tests(
            "SimulatedHost", layer: "Hosts",
            dependencies: [
                "ByteAccess", "IPPacket", "Provider", "WireGuard", "PacketTunnel", "OpenSSLCrypto", "SimulatedHost",
            ]),
    ]
    products += [
        .executable(name: "sluice", targets: ["sluice"]),
        .library(name: "OpenSSLCrypto", targets: ["OpenSSLCrypto"]),
        .library(name: "LDNSMessage", targets: ["LDNSMessage"]),
        .library(name: "EncryptedDNS", targets: ["EncryptedDNS"]),
        .library(name: "SecureStream", targets: ["SecureStream"]),
        .library(name: "SimulatedHost", targets: ["SimulatedHost"]),
    ]
#endif

let package = Package(
    name: "sluice",
    platforms: [.macOS(.v26), .iOS(.v26)],
    products: products,
    targets: targets
)
