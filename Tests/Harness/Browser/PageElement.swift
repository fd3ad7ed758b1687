/// An element of the page that a browser shows.
package struct PageElement: Sendable {
    private let browser: Browser
    private let id: String

    /// The JSON key under which WebDriver returns elements (§12).
    private static let key = "element-6066-11e4-a52e-4f735466cecf"

    init(_ found: Any, of browser: Browser) throws {
        guard let id = (found as? [String: Any])?[Self.key] as? String else {
            throw Browser.DriverError(description: "no element: \(found)")
        }
        self.browser = browser
        self.id = id
    }

    private func get(_ path: String) throws -> Any {
        try browser.send("/element/\(id)\(path)", method: "GET")
    }

    /// Scrolls to the element and clicks it; throws if another element covers it.
    package func click() throws {
        // At the edge of the viewport a sticky element might cover it.
        let script = "arguments[0].scrollIntoView({ block: 'center' })"
        try browser.send("/execute/sync", ["script": script, "args": [[Self.key: id]]])
        try browser.send("/element/\(id)/click")
    }

    /// Empties a text field.
    package func clear() throws { try browser.send("/element/\(id)/clear") }

    /// Focuses the element and types text.
    package func type(_ text: String) throws {
        try browser.send("/element/\(id)/value", ["text": text])
    }

    /// True if the element is visible, or would be after scrolling.
    package var isShown: Bool {
        get throws { try get("/displayed") as? Bool == true }
    }

    /// False for a disabled control.
    package var isEnabled: Bool {
        get throws { try get("/enabled") as? Bool == true }
    }

    /// The accessible name (Accessible Name and Description Computation).
    package var name: String {
        get throws { try get("/computedlabel") as? String ?? "" }
    }

    /// The accessible role (WAI-ARIA).
    package var role: String {
        get throws { try get("/computedrole") as? String ?? "" }
    }

    /// Returns a property of the DOM object as text.
    package func property(_ name: String) throws -> String {
        let value = try get("/property/\(name)")
        return value as? String ?? "\(value)"
    }
}
