import Foundation

/// An issuer of certificates that only a test trusts, made by the `openssl` program; its files are
/// gone when it is released, or when the process of the tests ends.
package final class TestAuthority: Sendable {
    /// A certificate and its key, as files that `--tls-certificate` and `--tls-key` take.
    package struct Leaf: Sendable {
        /// The PEM file with the certificate.
        package let certificate: String
        /// The PEM file with its key.
        package let key: String

        /// The files of these names.
        package init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// The kinds of key.
    package enum Key: Sendable {
        case ec
        case rsa

        var arguments: [String] {
            switch self {
            case .ec: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            case .rsa: ["-newkey", "rsa:2048"]
            }
        }
    }

    /// `openssl` did not do what it was asked.
    package struct Failure: Error {
        /// What it said.
        package let output: String
    }

    private let folder: TemporaryFolder
    private let openssl: String

    /// Makes the issuer's own certificate and an empty register.
    ///
    /// - Throws: `Failure`, or that there is no `openssl`.
    package init(_ name: String = "Test authority") throws {
        openssl = try Program.find("openssl")
        folder = try TemporaryFolder()
        ExitHandlers.atExit { [url = folder.url] in try? FileManager.default.removeItem(at: url) }
        try write(configuration, "authority.cnf")
        try write("", "index.txt")
        try write("1000\n", "serial")
        try run(
            ["req", "-x509", "-new"] + Key.ec.arguments + [
                "-noenc", "-keyout", path("ca.key"), "-out", file, "-days", "30",
                "-subj", "/CN=\(name)", "-extensions", "root",
            ] + settings)
    }

    /// The PEM file with the issuer's certificate.
    package var file: String { path("ca.pem") }

    private var settings: [String] { ["-config", path("authority.cnf")] }

    /// A certificate of this issuer.
    ///
    /// - Parameters:
    ///   - name: What the subject and the files are called; each name once.
    ///   - hosts: Host names, `*.` in front of them allowed.
    ///   - addresses: IP addresses.
    ///   - key: Which kind of key it has.
    ///   - years: From the beginning of which year to that of which it is valid.
    /// - Returns: Where it is.
    /// - Throws: `Failure`.
    package func leaf(
        _ name: String, hosts: [String] = [], addresses: [String] = [], key: Key = .ec,
        years: Range<Int> = 2024..<2049
    ) throws -> Leaf {
        let leaf = Leaf(certificate: path("\(name).pem"), key: path("\(name).key"))
        let names = hosts.map { "DNS:\($0)" } + addresses.map { "IP:\($0)" }
        let subject = names.isEmpty ? "" : "subjectAltName=\(names.joined(separator: ","))\n"
        try write(Self.leafFields + subject, "\(name).ext")
        try run(
            ["req", "-new"] + key.arguments + [
                "-noenc", "-keyout", leaf.key, "-out", path("\(name).csr"), "-subj", "/CN=\(name)",
            ] + settings)
        try run(
            [
                "ca", "-batch", "-notext", "-in", path("\(name).csr"), "-out", leaf.certificate,
                "-extfile", path("\(name).ext"), "-startdate", "\(years.lowerBound)0101000000Z",
                "-enddate", "\(years.upperBound)0101000000Z",
            ] + settings)
        // Clients that are to find the issuer are shown it.
        let own = try Data(contentsOf: URL(fileURLWithPath: leaf.certificate))
        let issuer = try Data(contentsOf: URL(fileURLWithPath: file))
        try (own + issuer).write(to: URL(fileURLWithPath: leaf.certificate))
        return leaf
    }

    /// Lays the issuer's signed word that a certificate is not revoked beside it, as `.ocsp`.
    ///
    /// - Throws: `Failure`.
    package func writeOCSPResponse(for leaf: Leaf) throws {
        let request = leaf.certificate + ".request"
        let own = ["-index", path("index.txt"), "-CA", file]
        let signing = ["-rsigner", file, "-rkey", path("ca.key")]
        try run(
            ["ocsp"] + own + signing + [
                "-issuer", file, "-cert", leaf.certificate, "-no_nonce", "-reqout", request,
            ])
        try run(
            ["ocsp"] + own + signing + [
                "-reqin", request, "-respout", leaf.certificate + ".ocsp", "-ndays", "7",
            ])
    }

    private func path(_ name: String) -> String { folder.appending(path: name).path }

    private func write(_ text: String, _ name: String) throws {
        try folder.write(text, to: name)
    }

    private func run(_ arguments: [String]) throws {
        let result = try Program.run(openssl, arguments)
        guard result.status == 0 else { throw Failure(output: result.errors) }
    }

    private static let leafFields = """
        basicConstraints = critical, CA:FALSE
        keyUsage = critical, digitalSignature, keyEncipherment
        extendedKeyUsage = serverAuth, clientAuth

        """

    private var configuration: String {
        """
        [req]
        distinguished_name = name
        prompt = no
        [name]
        [ca]
        default_ca = authority
        [authority]
        database = \(path("index.txt"))
        serial = \(path("serial"))
        new_certs_dir = \(folder.path)
        certificate = \(file)
        private_key = \(path("ca.key"))
        default_md = sha256
        policy = any
        unique_subject = no
        [any]
        commonName = supplied
        [root]
        basicConstraints = critical, CA:TRUE
        keyUsage = critical, keyCertSign, cRLSign, digitalSignature
        subjectKeyIdentifier = hash

        """
    }
}
