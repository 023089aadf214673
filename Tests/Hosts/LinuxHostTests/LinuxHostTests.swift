import Testing

@testable import LinuxHost
