/// An element of the page that a browser shows.
package struct PageElement: Sendable {
    private let browser: Browser
    private let id: String

    /// The name under which WebDriver gives elements (§12).
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

    /// Scrolls to it and clicks it; throws if something else lies over it.
    package func click() throws {
        // At an edge it might lie under what sticks there.
        let script = "arguments[0].scrollIntoView({ block: 'center' })"
        try browser.send("/execute/sync", ["script": script, "args": [[Self.key: id]]])
        try browser.send("/element/\(id)/click")
    }

    /// Empties a field.
    package func clear() throws { try browser.send("/element/\(id)/clear") }

    /// Gives it the focus and types.
    package func type(_ text: String) throws {
        try browser.send("/element/\(id)/value", ["text": text])
    }

    /// Whether somebody who looks can see it, or could after scrolling.
    package var isShown: Bool {
        get throws { try get("/displayed") as? Bool == true }
    }

    /// False for a control that is off.
    package var isEnabled: Bool {
        get throws { try get("/enabled") as? Bool == true }
    }

    /// What it is called to a screen reader (Accessible Name and Description Computation).
    package var name: String {
        get throws { try get("/computedlabel") as? String ?? "" }
    }

    /// What it is to a screen reader (WAI-ARIA).
    package var role: String {
        get throws { try get("/computedrole") as? String ?? "" }
    }

    /// A property of the object, as text.
    package func property(_ name: String) throws -> String {
        let value = try get("/property/\(name)")
        return value as? String ?? "\(value)"
    }
}
