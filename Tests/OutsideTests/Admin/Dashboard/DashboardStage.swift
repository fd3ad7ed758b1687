import Foundation
import Harness
import Testing

/// A browser that shows the dashboard of a node.
final class DashboardStage {
    let browser: Browser
    private let node: NodeProcess

    /// Starts a browser with a desktop-size viewport and opens the page.
    init(_ node: NodeProcess, width: Int = 1_440, isDark: Bool = false) throws {
        self.node = node
        browser = try Browser.withNewPage()
        try browser.emulate(width: width, height: 900, isDark: isDark)
        try open()
    }

    /// Reloads the page.
    func open() throws { try browser.open("http://127.0.0.1:\(node.adminPort)/") }

    /// Waits until the page shows live figures.
    func goLive(at location: SourceLocation = #_sourceLocation) throws {
        try wait(for: "\(Self.text("live")) === 'Live'", at: location)
        try wait(for: "\(Self.text("node-id")) !== '–'", at: location)
    }

    /// Returns a JavaScript expression for the text of the element with an id.
    static func text(_ id: String) -> String { "document.getElementById('\(id)').textContent" }

    func text(_ id: String) throws -> String { try browser.text("#\(id)") }

    func element(_ selector: String) throws -> PageElement { try browser.element(selector) }

    /// Clicks an element; retries once if the page replaces it between the search and the click.
    func click(_ selector: String) throws {
        do {
            try element(selector).click()
        } catch let fault as Browser.DriverError where fault.isStaleElement {
            try element(selector).click()
        }
    }

    /// Waits until a JavaScript expression is true in the page.
    func wait(
        for condition: String, seconds: Double = 20, at location: SourceLocation = #_sourceLocation
    ) throws {
        let isThere = try browser.waitUntil(condition, seconds: seconds)
        try #require(isThere, "\(condition)\n\(said())", sourceLocation: location)
    }

    /// Waits until an element's text contains these words.
    func wait(
        _ id: String, says words: String, at location: SourceLocation = #_sourceLocation
    ) throws {
        try wait(for: "\(Self.text(id)).includes('\(words)')", at: location)
    }

    /// Returns the page's text and console messages for a failure message.
    private func said() -> String {
        let seen = (try? browser.value("document.body.innerText")) ?? ""
        return "\(seen)\n\((try? browser.consoleMessages()) ?? [])"
    }

    /// Chooses one option of a group; its inputs lie invisibly over their labels.
    func choose(_ name: String, _ value: String) throws {
        try click("label:has(input[name=\(name)][value=\(value)])")
    }

    /// Expects that the page's console has no messages.
    func expectNoComplaint(at location: SourceLocation = #_sourceLocation) throws {
        let complaints = try browser.consoleMessages()
        #expect(complaints.isEmpty, sourceLocation: location)
    }
}

extension TestImage {
    /// Creates an image of 300 by 200 pixels that a browser can draw.
    static func drawn(_ name: String) -> TestImage {
        let text = """
            <svg xmlns="http://www.w3.org/2000/svg" width="300" height="200">
            <title>\(name)</title><circle cx="150" cy="100" r="80" fill="teal"/></svg>
            """
        return TestImage(
            name: "\(name).svg", contentType: "image/svg+xml", bytes: Array(text.utf8))
    }
}
