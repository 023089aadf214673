import SimulatedHost
import Testing

@testable import WireGuard

@Suite("Configuration protocol: persistent keepalives")
struct ConfigurationKeepaliveTests {
    @Test("U7: turning persistent keepalives on sends one at once, if the link is up and there is a key")
    func keepaliveAtOnce() {
        let device = ConfiguredDevice()
        device.device.setLink(up: true, at: device.now)
        device.receive("set=1\npublic_key=\(keyA)\nendpoint=192.0.2.1:5\npersistent_keepalive_interval=25\n\n")
        #expect(device.nextSent() == nil)
        device.receive("set=1\nprivate_key=\(privateKey)\n\n")
        #expect(device.nextSent() == .initiation)
        device.receive("set=1\npublic_key=\(keyB)\npersistent_keepalive_interval=25\nendpoint=192.0.2.1:6\n\n")
        #expect(device.nextSent() == .initiation, "the endpoint may come after the interval")
        device.receive("set=1\npublic_key=\(keyB)\npersistent_keepalive_interval=26\n\n")
        #expect(device.nextSent() == nil, "it was on already")
    }

    @Test("U7: persistent keepalives that were configured before start when the link comes up")
    func keepaliveAtLinkUp() {
        let device = ConfiguredDevice()
        device.receive(
            """
            set=1
            private_key=\(privateKey)
            public_key=\(keyA)
            endpoint=192.0.2.1:5
            persistent_keepalive_interval=25


            """
        )
        #expect(device.nextSent() == nil)
        device.device.setLink(up: true, at: device.now)
        #expect(device.nextSent() == .initiation)
    }
}
