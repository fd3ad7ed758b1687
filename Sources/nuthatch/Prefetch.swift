import ArgumentParser
import Client

/// The command `nuthatch prefetch`.
struct Prefetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetch images before clients ask for them.",
        discussion: """
            The node asks for each URL as a client of it would, so that the image is where it \
            belongs: at its owners. Shows how far it is; ending the command does not end it. While \
            as many prefetches run as may, it waits for its turn, unless it is not to wait.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch prefetch https://img.example/a.jpg https://img.example/b.jpg
              sort -u urls.txt | nuthatch prefetch --file -
              nuthatch prefetch --no-wait --sitemap https://www.example/sitemap.xml

            \(NodeConnectionHelp.exitStatusHelp(NodeConnectionHelp.timeoutStatus)) It is 1, too, \
            if a URL or a sitemap could not be fetched, and all was over in time.
            """)

    @Argument(help: "URLs of images, or of sites that the node answers for.")
    var urls: [String] = []

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "File with a URL on each line, or - for standard input; empty lines and those that "
                + "begin with # are passed over. May be repeated.", valueName: "path"),
        completion: .file())
    var file: [String] = []

    @Option(help: ArgumentHelp("URL of a sitemap, whose URLs are fetched.", valueName: "url"))
    var sitemap: String?

    @Option(
        help: ArgumentHelp(
            "The value of Accept with which images are asked for, which decides what variant is "
                + "kept. Default: */*.", valueName: "types"))
    var accept: String?

    @OptionGroup
    var waitOptions: WaitOptions

    @OptionGroup
    var connection: NodeConnectionOptions

    func validate() throws {
        if sitemap != nil, !urls.isEmpty || !file.isEmpty {
            throw ValidationError("--sitemap stands alone; one prefetch is of one kind")
        }
        if sitemap == nil, urls.isEmpty, file.isEmpty {
            throw ValidationError("say what is to be fetched: URLs, --file, --sitemap")
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
