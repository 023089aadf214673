import Glibc
import SecureStream
import TestSupport

extension Certificates {
    /// A server with the certificates of one name and its key.
    func server(_ name: String, protocols: [String] = []) throws -> TLSServerContext {
        try TLSServerContext(
            certificateFile: path("\(name).pem"), keyFile: path("\(name).key"), protocols: protocols)
    }

    /// The pin of a certificate as `openssl` computes it.
    func pin(_ name: String) throws -> PublicKeyPin {
        struct Unreadable: Error {}
        let file = unsafe fopen(path("\(name).pin"), "r")
        guard let file = unsafe file else { throw Unreadable() }
        defer { unsafe fclose(file) }
        var text = [CChar](repeating: 0, count: 64)
        // fgets writes at most 64 characters with the zero.
        _ = unsafe fgets(&text, 64, file)
        let line = String(decoding: text.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard let pin = PublicKeyPin(parsing: "sha256/\(line)") else { throw Unreadable() }
        return pin
    }

    /// Two pins: those of the certificates, or one of them and a spare that nobody has the key of.
    func pins(_ names: String...) throws -> PublicKeyPins {
        struct TooFew: Error {}
        let spare = PublicKeyPin(parsing: "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
        guard let pins = PublicKeyPins(try names.map(pin) + [spare].compactMap { $0 }) else { throw TooFew() }
        return pins
    }
}
