import Glibc
import SecureStream

/// Certificates that `openssl` makes when the tests run, in a folder of their own that goes away with them. The folder holds the
/// configurations and logs of real servers too.
final class Certificates: Sendable {
    static let shared = Certificates()

    /// Where they are.
    let folder: String

    private init() {
        var template = Array("/tmp/sluice-encrypted-XXXXXX\0".utf8CString)
        // The template ends in a zero and is changed in place.
        folder = unsafe template.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress, let path = unsafe mkdtemp(start) else {
                fatalError("no folder for certificates")
            }
            return unsafe String(cString: path)
        }
        // Commands of our own, in texts that outlive the calls.
        _ = atexit { _ = unsafe system("rm -rf \(Certificates.shared.folder)") }
        let status = unsafe system("cd \(folder) && sh -ec '\(Self.script)' >log 2>&1")
        guard status == 0 else { fatalError("openssl made no certificates: see \(folder)/log") }
    }

    /// The path of a file.
    func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// The server that has this certificate and its key.
    func server(_ name: String, protocols: [String]) throws -> TLSServer {
        try TLSServer(
            TLSServerContext(certificateFile: path("\(name).pem"), keyFile: path("\(name).key"), protocols: protocols))
    }

    /// Trusts our own authority, with pins or without.
    func authority(_ pins: PublicKeyPins? = nil) -> TrustPolicy {
        .authorities(.file(path("authority.pem")), pins: pins)
    }

    /// A client for `dns.example`.
    func client(_ policy: TrustPolicy, protocols: [String]) throws -> TLSClient {
        try TLSClient(TLSClientContext(policy, protocols: protocols), identity: .name("dns.example"))
    }

    /// Two pins, neither of which is of any key here.
    static var foreignPins: PublicKeyPins? {
        PublicKeyPins(["A", "B"].compactMap { PublicKeyPin(parsing: String(repeating: $0, count: 42) + "A=") })
    }

    private static let script = """
        key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $1.key; }
        issue() {
            key $1
            openssl req -new -key $1.key -subj "/CN=$1" -out $1.csr
            printf "subjectAltName=%s\\n" "$2" > $1.ext
            openssl x509 -req -in $1.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 30 -extfile $1.ext -out $1.pem
        }
        key authority
        openssl req -x509 -new -key authority.key -subj "/CN=authority" -days 30 -out authority.pem
        issue good "DNS:dns.example,IP:127.0.0.1"
        issue other DNS:other.example
        key alone
        openssl req -x509 -new -key alone.key -subj /CN=alone -addext subjectAltName=DNS:dns.example -days 30 -out alone.pem
        touch index
        printf "[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\nserial=ca.srl\\nnew_certs_dir=.\\ndefault_md=sha256\\npolicy=p\\n" > ca.conf
        printf "unique_subject=no\\nx509_extensions=x\\n[p]\\ncommonName=supplied\\n[x]\\nsubjectAltName=DNS:dns.example\\n" >> ca.conf
        cp good.key expired.key
        openssl ca -batch -config ca.conf -rand_serial -cert authority.pem -keyfile authority.key -notext -in good.csr \\
            -startdate 20200101000000Z -enddate 20200201000000Z -out expired.pem
        chmod -R a+rX .
        """
}
