import Provider
import TestSupport
import Testing

@Suite("Apple's names and numbers")
struct AppleValuesTests {
    /// NEProviderStopReason of the macOS 26 SDK, written down from its interface.
    @Test("Stop reasons have Apple's raw values")
    func stopReasons() {
        let table: [(ProviderStopReason, Int)] = [
            (.none, 0), (.userInitiated, 1), (.providerFailed, 2), (.noNetworkAvailable, 3),
            (.unrecoverableNetworkChange, 4), (.providerDisabled, 5), (.authenticationCanceled, 6),
            (.configurationFailed, 7), (.idleTimeout, 8), (.configurationDisabled, 9), (.configurationRemoved, 10),
            (.superceded, 11), (.userLogout, 12), (.userSwitch, 13), (.connectionFailed, 14), (.sleep, 15),
            (.appUpdate, 16), (.internalError, 17),
        ]
        for (reason, number) in table { #expect(reason.rawValue == number) }
        #expect(ProviderStopReason.allCases.count == table.count)
        #expect(ProviderStopReason(rawValue: 18) == nil)
        #expect(Set(ProviderStopReason.allCases.map(\.description)).count == table.count)
    }

    /// NEVPNStatus.
    @Test("Statuses have Apple's raw values")
    func statuses() {
        let table: [(VPNStatus, Int)] = [
            (.invalid, 0), (.disconnected, 1), (.connecting, 2), (.connected, 3), (.reasserting, 4),
            (.disconnecting, 5),
        ]
        for (status, number) in table { #expect(status.rawValue == number) }
        #expect(VPNStatus.allCases.count == table.count)
    }

    /// NETunnelProviderError.
    @Test("Errors of network settings have Apple's raw values")
    func settingsErrors() {
        let table: [(NetworkSettingsError, Int)] = [
            (.networkSettingsInvalid, 1), (.networkSettingsCanceled, 2), (.networkSettingsFailed, 3),
        ]
        for (error, number) in table { #expect(error.rawValue == number) }
        #expect(NetworkSettingsError.allCases.count == table.count)
    }
}
