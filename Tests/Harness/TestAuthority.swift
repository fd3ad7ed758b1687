import Foundation

/// A test-only certificate authority made with the `openssl` program.
///
/// Its files are removed on release or at the end of the test process.
package final class TestAuthority: Sendable {
    /// A certificate and its key, as files for `--tls-certificate` and `--tls-key`.
    package struct Leaf: Sendable {
        /// The PEM file with the certificate.
        package let certificate: String
        /// The PEM file with the private key.
        package let key: String

        /// Creates a leaf from the paths of its files.
        package init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// The types of private key.
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

    /// The error for an `openssl` command that fails.
    package struct Failure: Error {
        /// The output of the command.
        package let output: String
    }

    private let folder: TemporaryFolder
    private let openssl: String

    /// Creates the authority's own certificate and an empty index.
    ///
    /// - Throws: `Failure`, or `NotFound` if there is no `openssl`.
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

    /// The PEM file with the authority's certificate.
    package var file: String { path("ca.pem") }

    private var settings: [String] { ["-config", path("authority.cnf")] }

    /// Issues a certificate.
    ///
    /// - Parameters:
    ///   - name: The subject's common name and the base name of the files; unique for each
    ///     certificate.
    ///   - hosts: Host names, which may begin with `*.`.
    ///   - addresses: IP addresses.
    ///   - key: The type of key.
    ///   - years: The validity period, from the start of the first year to the start of the second.
    ///   - daysLeft: The days until the end of the validity period; `nil` for the start of a year.
    /// - Returns: The files of the certificate and key.
    /// - Throws: `Failure`.
    package func leaf(
        _ name: String, hosts: [String] = [], addresses: [String] = [], key: Key = .ec,
        years: Range<Int> = 2024..<2049, daysLeft: Double? = nil
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
                "-enddate", daysLeft.map(Self.end(in:)) ?? "\(years.upperBound)0101000000Z",
            ] + settings)
        // The authority's certificate is appended for clients that build the chain.
        let own = try Data(contentsOf: URL(fileURLWithPath: leaf.certificate))
        let issuer = try Data(contentsOf: URL(fileURLWithPath: file))
        try (own + issuer).write(to: URL(fileURLWithPath: leaf.certificate))
        return leaf
    }

    /// Writes the authority's OCSP response "not revoked" beside the certificate, as `.ocsp`.
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

    /// Returns the time in `days` as `openssl ca` reads it.
    private static func end(in days: Double) -> String {
        Date(timeIntervalSinceNow: days * 86_400).formatted(
            .iso8601.timeSeparator(.omitted).dateSeparator(.omitted)
        )
        .replacing("T", with: "")
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
