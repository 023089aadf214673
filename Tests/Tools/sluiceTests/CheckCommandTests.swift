import DNSProxy
import Glibc
import LinuxHost
import PacketTunnel
import TestSupport
import Testing

struct CheckCommandTests {
    private func withFiles<Result>(_ wrong: WrongConfiguration, _ body: (String) throws -> Result) throws -> Result {
        try inTemporaryFolder { folder in
            try writeText(wrong.text.replacing("FOLDER", with: folder), to: "\(folder)/sluice.json5", mode: 0o644)
            if let quick = wrong.quick { try writeText(quick, to: "\(folder)/wg0.conf") }
            return try body(folder)
        }
    }

    @Test("A wrong configuration is refused with all that is wrong", arguments: wrongConfigurations)
    func refusal(_ wrong: WrongConfiguration) throws {
        try withFiles(wrong) { folder in
            let errors = #expect(throws: ConfigurationErrors.self) {
                try LoadedConfiguration.read("\(folder)/sluice.json5")
            }
            #expect(errors?.lines.map { $0.replacing(folder, with: "FOLDER") } == wrong.lines)
        }
    }

    @Test("sluice check writes a line for all that is wrong, and ends with 1", arguments: wrongConfigurations)
    func command(_ wrong: WrongConfiguration) throws {
        try withFiles(wrong) { folder in
            let outcome = try runSluice(["check", "--config", "\(folder)/sluice.json5"], in: folder)
            #expect(outcome.status == 1)
            #expect(outcome.output == "")
            #expect(outcome.errors.replacing(folder, with: "FOLDER") == wrong.lines.map { $0 + "\n" }.joined())
        }
    }

    @Test func thereAreFortyWrongConfigurationsAtLeast() {
        #expect(Set(wrongConfigurations.map { $0.text + ($0.quick ?? "") }).count >= 40)
    }

    @Test func aConfigurationThatIsFineIsSaidToBe() throws {
        try withFiles(WrongConfiguration("{ device: { addresses: ['10.0.0.1/24'] } }")) { folder in
            let outcome = try runSluice(["check", "--config=\(folder)/sluice.json5"], in: folder)
            #expect(outcome == ProgramOutcome(status: 0, output: "\(folder)/sluice.json5: fine\n", errors: ""))
        }
    }

    @Test func whatIsNotSupportedYetIsSaidButNoFault() throws {
        let text = "{\n filter: {},\n dns: { upstreams: [{ name: 'a', url: 'udp://192.0.2.1' }] } }"
        try withFiles(WrongConfiguration(text)) { folder in
            let path = "\(folder)/sluice.json5"
            let configuration = try LoadedConfiguration.read(path)
            let outcome = try runSluice(["check", "--config", path], in: folder)
            #expect(outcome.status == 0)
            #expect(outcome.output == "\(path): fine\n")
            #expect(outcome.errors == configuration.unsupportedParts.map { "\($0)\n" }.joined())
        }
    }

    @Test func noMoreThanFiftyErrorsAreWritten() throws {
        let text = "{ device: { addresses: [\n" + String(repeating: "'x',\n", count: 70) + "], nmae: 'x' } }"
        try withFiles(WrongConfiguration(text)) { folder in
            let outcome = try runSluice(["check", "--config", "\(folder)/sluice.json5"], in: folder)
            let lines = outcome.errors.split(separator: "\n")
            #expect(lines.count == 51)
            #expect(lines.last == "and 21 more")
            #expect(lines.first?.hasPrefix("\(folder)/sluice.json5:2: device.addresses[0]: expected") == true)
        }
    }

    @Test func aTunnelsFileCanBeACredentialOfSystemd() throws {
        let tunnel = WrongConfiguration(
            "{ tunnel: { config: 'credential:wg0.conf' } }", quick: "[Interface]\nMTU = 1400\n")
        try withFiles(tunnel) { folder in
            // So systemd lets a service's user in.
            try writeText("[Interface]\nMTU = 1400\n", to: "\(folder)/wg0.conf", mode: 0o440)
            let outcome = try runSluice(
                ["check", "--config", "\(folder)/sluice.json5"], in: folder,
                environment: ["CREDENTIALS_DIRECTORY=\(folder)"])
            #expect(outcome == ProgramOutcome(status: 0, output: "\(folder)/sluice.json5: fine\n", errors: ""))
        }
    }

    @Test func aSecretKeyIsInNoMessage() throws {
        let key = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
        let quick = "\(key)\n[Interface]\n\(key)\nPrivateKey: \(key)\nPrivateKey = \(key)x\nMTU = \(key)\n[\(key)]\n"
        try withFiles(WrongConfiguration("{ tunnel: { config: 'FOLDER/wg0.conf' } }", quick: quick)) { folder in
            let outcome = try runSluice(["check", "--config", "\(folder)/sluice.json5"], in: folder)
            #expect(outcome.status == 1)
            #expect(outcome.errors.split(separator: "\n").count == 6)
            #expect(!outcome.errors.contains("yAnz5TF"))
        }
    }

    @Test func theSampleIsFineAndHasEveryPart() throws {
        // The sample stands beside the tool's sources; this file's own place leads there.
        var folder = #filePath[...]
        for _ in 0..<4 { folder = folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)] }
        let sample = try readText("\(folder)/Sources/Tools/sluice/Samples/sluice.json5")
        try inTemporaryFolder { folder in
            // Its files are of a machine that it is for.
            let text = sample.replacing("/etc/wireguard/wg0.conf", with: "\(folder)/wg0.conf")
                .replacing("/etc/ssl/certs/ca-certificates.crt", with: "\(folder)/sluice.json5")
                .replacing("/etc/sluice/", with: "\(folder)/")
            try makeCertificate(in: folder)
            try writeText("[Interface]\nListenPort = 51820\n", to: "\(folder)/wg0.conf")
            try writeText(text, to: "\(folder)/sluice.json5")
            let value = try LoadedConfiguration.read("\(folder)/sluice.json5").value
            #expect(value.interfaceName?.string == "sluice0")
            #expect(value.tunnel?.quick.tunnel.listenPort == 51820)
            #expect(value.dns?.upstreams.map(\.name) == ["main", "corp"])
            #expect(value.dns?.secureListen?.tls.count == 2 && value.dns?.secureListen?.https.count == 2)
            #expect(value.rules?.inline == [try NameRule(parsing: "||ads.example^")])
            #expect(value.filter?.rules.map(\.action) == [.drop])
            #expect(value.apps.map(\.via) == [.proxy("corp"), .direct, .tunnel, .tunnel])
            #expect(try runSluice(["check", "--config", "\(folder)/sluice.json5"], in: folder).status == 0)
        }
    }
}

/// Makes `cert.pem` and `key.pem` in a folder.
private func makeCertificate(in folder: String) throws {
    struct Failure: Error {}
    // A command of our own, in a text that outlives the call.
    let status = unsafe system(
        "cd \(folder) && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem "
            + "-subj /CN=dns.example -days 2 2>log && chmod 600 key.pem")
    if status != 0 { throw Failure() }
}
