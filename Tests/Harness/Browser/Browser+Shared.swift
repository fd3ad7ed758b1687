extension Browser {
    private static let shared = LockedBox<Browser?>(nil)

    /// The browser of this process, with a new page in place of the one it had.
    ///
    /// A browser takes seconds to start, and pages of different nodes share nothing: each node has
    /// a port, and so an origin, of its own. It ends with the process.
    ///
    /// - Throws: ``DriverError``.
    package static func withNewPage() throws -> Browser {
        if let browser = shared.value, (try? browser.replacePage()) != nil { return browser }
        let browser = try Browser()
        shared.value = browser
        ExitHandlers.atExit { shared.value = nil }
        return browser
    }

    /// Opens an empty page, closes the former one, and drops what the console said of it.
    private func replacePage() throws {
        let page = try send("/window/new", ["type": "tab"]) as? [String: Any]
        guard let handle = page?["handle"] as? String else {
            throw DriverError(description: "no page: \(page ?? [:])")
        }
        try send("/window", method: "DELETE")
        try send("/window", ["handle": handle])
        _ = try consoleMessages()
    }
}
