import ArgumentParser
import Client
import NodeConfiguration

/// The command `nuthatch get`.
struct Get: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Get an image as a client would, or show how it is served.",
        discussion: """
            Sends the request to the node's port for clients, over TLS if --base begins with \
            https://. The certificate must be valid for --server-name, or else for the host of \
            the site's URL or of --base. The output file appears only when it is complete.

            The node of this machine is found from plain-listen and listen, as in the flags, the \
            environment and the settings file of serve; TLS is used if it has no cleartext port.

            Examples:
              nuthatch get --output a.jpg https://img.example/a.jpg
              nuthatch get --head --header 'Accept: image/avif' https://img.example/a.jpg
              nuthatch get --site-url --base 10.0.0.7 http://www.example.com/ >index.html
              nuthatch get --head --site-url --base https://10.0.0.7:8443 https://www.example.com/

            Exit status: 0 on success, 1 if the response is an error or the file cannot be \
            written, 64 if the command line is invalid, 69 if no node responded or the response \
            is incomplete, 78 if the settings do not say which node to query.
            """)

    @Argument(help: "The URL of the image.")
    var url: String

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("File for the body. Default: standard output.", valueName: "path"),
        completion: .file())
    var output: String?

    @Flag(help: "Show status, Cache-Status, type, size, time and fields, without the body (HEAD).")
    var head = false

    @Option(
        help: ArgumentHelp(
            "A request field. May be repeated.", valueName: "name: value"))
    var header: [String] = []

    @Option(
        help: ArgumentHelp(
            "URL where clients are served. Default: the node of this machine.", valueName: "url"))
    var base: String?

    @Option(
        help: ArgumentHelp(
            "PEM file with issuers to trust beside the system's, for TLS.", valueName: "path"),
        completion: .file())
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "Host that the node's certificate must have, for TLS.", valueName: "host"))
    var serverName: String?

    @Flag(help: "The URL is that of a site: request its path, with its host.")
    var siteUrl = false

    @Option(
        help: ArgumentHelp(
            "Time for the whole transfer. Units: ms, s, m, h, d. Default: 1m.",
            valueName: "duration"))
    var timeout: String?

    @Flag(help: "Print JSON, for programs; with --head or --output.")
    var json = false

    @OptionGroup(visibility: .hidden)
    var settings: SettingOptions

    func validate() throws {
        if head, output != nil { throw ValidationError("--head has no body for --output") }
        if json, !head, output == nil {
            throw ValidationError("--json requires --head or --output: the body is not JSON")
        }
    }

    func run() throws {
        var wish = GetArguments(url: url)
        (wish.base, wish.isOfSite, wish.output) = (base, siteUrl, output)
        (wish.issuersFile, wish.serverName) = (ca, serverName)
        (wish.isHeadOnly, wish.fields) = (head, header)
        let options = CommandOptions(
            ownNode: settings.sources.ownNode, timeout: timeout ?? "1m", isJSON: json)
        try Commands(options).get(wish).exit()
    }
}
