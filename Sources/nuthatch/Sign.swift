import ArgumentParser
import Foundation
import NodeConfiguration
import Platform

/// The command `nuthatch sign`, which signs URLs.
struct Sign: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign URLs for nodes that serve only signed URLs.",
        discussion: """
            Prints the signed URLs, one per line: for an image the request \
            to the API, for a site (--site) the URL with its signature. The first key of the file \
            signs. Without --expires-in and --expires-at a URL is valid for as long as its key is.

            Examples:
              nuthatch sign --signing-key-file keys --expires-in 1h http://a.example/b.jpg
              nuthatch sign --signing-key-file keys --site www.example.com /a.jpg?width=3

            Exit status: 0 if all were signed, 64 if the command line is invalid or a URL cannot \
            be signed, 78 if the key file is invalid.
            """)

    @Option(
        help: ArgumentHelp(
            "File with the keys. Default: NUTHATCH_SIGNING_KEY_FILE.", valueName: "path"),
        completion: .file())
    var signingKeyFile: String?

    @Option(
        help: ArgumentHelp(
            "Time from now for which the URLs are valid. Units: ms, s, m, h, d.",
            valueName: "duration"))
    var expiresIn: String?

    @Option(
        help: ArgumentHelp(
            "Time until which the URLs are valid, in seconds since 1970.", valueName: "seconds"))
    var expiresAt: String?

    @Option(
        help: ArgumentHelp(
            "Address of the node that serves the images, e.g. http://127.0.0.1:8080; without "
                + "it only the request target is printed.", valueName: "url"))
    var base: String?

    @Option(
        help: ArgumentHelp(
            "The URLs belong to the site with this name in the node's settings: HOST, "
                + "HOST:PORT or *.", valueName: "name"))
    var site: String?

    @Argument(help: "The URLs; for a named site also paths with their queries.")
    var urls: [String]

    func validate() throws {
        if expiresIn != nil, expiresAt != nil {
            throw ValidationError("--expires-in and --expires-at exclude each other")
        }
        if base != nil, site != nil {
            throw ValidationError("--base and --site exclude each other")
        }
        if keyFile == nil {
            throw ValidationError("--signing-key-file or NUTHATCH_SIGNING_KEY_FILE is required")
        }
    }

    /// The path of the key file: that of the flag, else that of the environment.
    private var keyFile: String? { signingKeyFile ?? URLSigning.keyFileOfEnvironment }

    func run() throws {
        let signing: URLSigning
        do throws(ConfigurationError) {
            signing = try URLSigning(keyFile: keyFile ?? "")
        } catch {
            printError(error.description)
            throw ExitCode(EX_CONFIG)
        }
        let lines: [String]
        do {
            let expiry =
                try expiresIn.map { try URLSigning.expiry(in: $0, now: SystemClock.wallTime()) }
                ?? expiresAt.map(URLSigning.expiry(at:))
            let form = site.map(URLSigning.Form.site) ?? .image(base: base ?? "")
            lines = try urls.map { try signing.sign($0, as: form, expiry: expiry) }
        } catch let fault as URLSigning.Fault {
            printError(fault.description)
            throw ExitCode(EX_USAGE)
        }
        for line in lines { print(line) }
    }
}
