import Glibc
import SecureStream

/// Certificates that `openssl` makes when the tests run, in a folder of their own that goes away with them.
final class Certificates: Sendable {
    static let shared = Certificates()

    /// Where they are.
    let folder: String

    private init() {
        var template = Array("/tmp/sluice-certificates-XXXXXX\0".utf8CString)
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

    private static let script = """
        key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $1.key; }
        root() { key $1; openssl req -x509 -new -key $1.key -subj "/CN=$1" -days 30 -out $1.pem; }
        issue() {
            key $1
            openssl req -new -key $1.key -subj "/CN=$1" -out $1.csr
            printf "%b" "$3" > $1.ext
            sign $1 $2
        }
        sign() {
            openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -days 30 -extfile $1.ext -out $1.pem $3
        }
        rsa() {
            openssl req -new -newkey rsa:$2 -nodes -keyout $1.key -subj "/CN=$1" -out $1.csr
            printf "%b" "$server" > $1.ext
            sign $1 authority $3
        }
        server="subjectAltName=DNS:dns.example,IP:192.0.2.1,IP:2001:db8::1\\nextendedKeyUsage=serverAuth\\n"
        root authority
        root stranger
        issue good authority "$server"
        issue other authority "subjectAltName=DNS:other.example\\n"
        issue foreign stranger "$server"
        issue dns.example authority "extendedKeyUsage=serverAuth\\n"
        issue client authority "subjectAltName=DNS:dns.example\\nextendedKeyUsage=clientAuth\\n"
        issue intermediate authority "basicConstraints=critical,CA:true\\n"
        issue below intermediate "$server"
        cat intermediate.pem >> below.pem
        rsa strong-rsa 2048
        rsa weak-rsa 1024
        rsa sha1 2048 -sha1
        key alone
        openssl req -x509 -new -key alone.key -subj /CN=alone -addext subjectAltName=DNS:dns.example -days 30 -out alone.pem
        key early
        openssl req -new -key early.key -subj /CN=early -out early.csr
        cp early.key expired.key
        touch index
        printf "[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\nserial=ca.srl\\nnew_certs_dir=.\\ndefault_md=sha256\\npolicy=p\\n" > ca.conf
        printf "unique_subject=no\\nx509_extensions=x\\n[p]\\ncommonName=supplied\\n[x]\\nsubjectAltName=DNS:dns.example\\n" >> ca.conf
        sign="openssl ca -batch -config ca.conf -rand_serial -cert authority.pem -keyfile authority.key -notext -in early.csr"
        $sign -startdate 20200101000000Z -enddate 20200201000000Z -out expired.pem
        $sign -startdate 20900101000000Z -enddate 20910101000000Z -out early.pem
        for name in good other foreign alone intermediate expired strong-rsa weak-rsa; do
            openssl x509 -in $name.pem -pubkey -noout | openssl pkey -pubin -outform DER |
                openssl dgst -sha256 -binary | openssl base64 > $name.pin
        done
        cat foreign.pem good.pem > appended.pem
        cp foreign.key appended.key
        cat foreign.pem intermediate.pem authority.pem > dressed.pem
        cp foreign.key dressed.key
        """
}
