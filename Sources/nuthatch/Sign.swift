import ArgumentParser
import Foundation
import NodeConfiguration
import Platform

/// The command `nuthatch sign`, which signs URLs.
struct Sign: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign URLs for nodes that serve only what is signed.",
        discussion: """
            Prints each URL as clients are to ask for it, a line each: of an image the request to \
            the API, of a site (--site) the URL with its signature. The first key of the file \
            signs. Without --expires-in and --expires-at the URL is good for as long as its key is.

            Examples:
              nuthatch sign --signing-key-file keys --expires-in 1h http://a.example/b.jpg
              nuthatch sign --signing-key-file keys --site www.example.com /a.jpg?width=3

            Exit status: 0 if all were signed, 64 for a command line that cannot be read or a URL \
            that cannot be signed, 78 for a file of keys that is refused.
            """)

    @Option(
        help: ArgumentHelp(
            "File with the keys. Default: what NUTHATCH_SIGNING_KEY_FILE says.", valueName: "path"),
        completion: .file())
    var signingKeyFile: String?

    @Option(
        help: ArgumentHelp(
            "Time from now for which the URLs are good. Units: ms, s, m, h, d.",
            valueName: "duration"))
    var expiresIn: String?

    @Option(
        help: ArgumentHelp(
            "Time until which the URLs are good, in seconds since 1970.", valueName: "seconds"))
    var expiresAt: String?

    @Option(
        help: ArgumentHelp(
            "Address of the node that images are asked of, e.g. http://127.0.0.1:8080; without "
                + "it only the request's target is printed.", valueName: "url"))
    var base: String?

    @Option(
        help: ArgumentHelp(
            "The URLs are those of the site with this name in the node's settings: HOST, "
                + "HOST:PORT or *.", valueName: "name"))
    var site: String?

    @Argument(help: "The URLs; of a site with a name also paths with their queries.")
    var urls: [String]

    func validate() throws {
        if expiresIn != nil, expiresAt != nil {
            throw ValidationError("--expires-in and --expires-at exclude each other")
        }
        if base != nil, site != nil {
            throw ValidationError("--base is for images, --site for sites; one of them is meant")
        }
        if keyFile == nil {
            throw ValidationError("--signing-key-file or NUTHATCH_SIGNING_KEY_FILE is needed")
        }
    }

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
