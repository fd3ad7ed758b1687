import ArgumentParser
import Client

/// The command `nuthatch prefetch`.
struct Prefetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetch images before clients ask for them.",
        discussion: """
            The node requests each URL as a client would, so that the image is stored by its \
            owners. Shows progress; interrupting the command does not end the prefetch. If the \
            limit on running prefetches is reached, the command waits, unless --no-wait is set.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch prefetch https://img.example/a.jpg https://img.example/b.jpg
              sort -u urls.txt | nuthatch prefetch --file -
              nuthatch prefetch --no-wait --sitemap https://www.example/sitemap.xml

            \(NodeConnectionHelp.exitStatusHelp(NodeConnectionHelp.timeoutStatus)) It is also 1 \
            if the prefetch ended in time, but a URL or a sitemap could not be fetched.
            """)

    @Argument(help: "URLs of images, or of sites that the node serves.")
    var urls: [String] = []

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "File with one URL per line, or - for standard input; empty lines and those that "
                + "begin with # are ignored. May be repeated.", valueName: "path"),
        completion: .file())
    var file: [String] = []

    @Option(help: ArgumentHelp("URL of a sitemap whose URLs are fetched.", valueName: "url"))
    var sitemap: String?

    @Option(
        help: ArgumentHelp(
            "The value of Accept in the requests, which decides which variant is stored. "
                + "Default: */*.", valueName: "types"))
    var accept: String?

    @OptionGroup
    var waitOptions: WaitOptions

    @OptionGroup
    var connection: NodeConnectionOptions

    func validate() throws {
        if sitemap != nil, !urls.isEmpty || !file.isEmpty {
            throw ValidationError("--sitemap cannot be combined with URLs or --file")
        }
        if sitemap == nil, urls.isEmpty, file.isEmpty {
            throw ValidationError("nothing to fetch: give URLs, --file or --sitemap")
        }
    }

    func run() throws {
        var order = PrefetchArguments()
        (order.urls, order.files, order.sitemap) = (urls, file, sitemap)
        (order.accept, order.waitsUntilDone, order.timeout) = (
            accept, !waitOptions.noWait, waitOptions.within
        )
        try connection.commands.prefetch(order).exit()
    }
}
