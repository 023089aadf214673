import Testing

@testable import OpenSSLCrypto
