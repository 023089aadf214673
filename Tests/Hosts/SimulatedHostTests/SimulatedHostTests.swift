import Testing

@testable import SimulatedHost
