#if canImport(Glibc)
    internal import Glibc

    /// Certificates that `openssl` makes when the tests run, in a folder of their own that goes away with them. Each has its key
    /// beside it, and some their pin.
    ///
    /// | name | |
    /// |---|---|
    /// | `authority`, `stranger` | roots |
    /// | `good` | of `authority`, for `dns.example` and some addresses |
    /// | `other`, `foreign` | for another name, and of `stranger` |
    /// | `expired`, `early` | of another time |
    /// | `alone` | signed by itself |
    /// | `below`, `intermediate` | a chain of two |
    /// | `appended`, `dressed` | `foreign` with certificates of `authority` behind it |
    /// | `dns.example`, `client` | without a name, and not for servers |
    /// | `strong-rsa`, `weak-rsa`, `sha1` | of RSA keys |
    public final class Certificates: Sendable {
        /// Those of this process.
        public static let shared = Certificates()

        /// Where they are. Tests may add files.
        public let folder: String

        private init() {
            guard let folder = try? makeTemporaryFolder() else {
                fatalError("no folder for certificates")
            }
            self.folder = folder
            _ = atexit { removeTemporaryFolder(Certificates.shared.folder) }
            // A command of our own, in a text that outlives the call.
            let status = unsafe system("cd \(folder) && sh -ec '\(Self.script)' >log 2>&1")
            guard status == 0 else { fatalError("openssl made no certificates: see \(folder)/log") }
        }

        /// The path of a file.
        public func path(_ name: String) -> String { "\(folder)/\(name)" }

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
            server="subjectAltName=DNS:dns.example,IP:127.0.0.1,IP:192.0.2.1,IP:2001:db8::1\\nextendedKeyUsage=serverAuth\\n"
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
            chmod -R a+rX .
            """
    }
#endif
