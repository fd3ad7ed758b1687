package import Foundation

extension Browser {
    /// Goes to a page and returns when it is loaded.
    package func open(_ url: String) throws {
        try send("/url", ["url": url])
    }

    /// What an expression of JavaScript is, in the page; `arguments` are those given.
    ///
    /// - Returns: What JSON can say of it; elements as ``PageElement`` are found otherwise.
    package func value(_ expression: String, _ arguments: [Any] = []) throws -> Any {
        try send("/execute/sync", ["script": "return (\(expression));", "args": arguments])
    }

    /// Waits until an expression of JavaScript is true in the page; false if it never was.
    ///
    /// It is looked at in the page itself, twenty times a second.
    package func waitUntil(_ condition: String, seconds: Double = 20) throws -> Bool {
        let script = """
            const done = arguments[arguments.length - 1];
            const end = performance.now() + \(seconds * 1_000);
            const look = () => {
              let isThere = false;
              try { isThere = Boolean(\(condition)); } catch (error) { isThere = false; }
              if (isThere || performance.now() > end) done(isThere);
              else setTimeout(look, 50);
            };
            look();
            """
        return try send("/execute/async", ["script": script, "args": [Any]()]) as? Bool == true
    }

    /// The text of an element, found by a selector of CSS, as it is in the document.
    package func text(_ selector: String) throws -> String {
        try value("document.querySelector(arguments[0]).textContent", [selector]) as? String ?? ""
    }

    /// The first element that a selector of CSS finds.
    package func element(_ selector: String) throws -> PageElement {
        try PageElement(
            send("/element", ["using": "css selector", "value": selector]), of: self)
    }

    /// All that it finds.
    package func elements(_ selector: String) throws -> [PageElement] {
        let found = try send("/elements", ["using": "css selector", "value": selector])
        return try (found as? [Any] ?? []).map { try PageElement($0, of: self) }
    }

    /// Presses a key and lets it go, wherever the focus is.
    package func press(_ key: PageKey) throws {
        let steps = ["keyDown", "keyUp"].map { ["type": $0, "value": key.rawValue] }
        try send(
            "/actions", ["actions": [["type": "key", "id": "keyboard", "actions": steps]]])
    }

    /// Gives the page so many pixels, and the system's colours a tone.
    package func emulate(width: Int, height: Int, isDark: Bool = false) throws {
        try sendDevToolsCommand(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false])
        let tone = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
        try sendDevToolsCommand("Emulation.setEmulatedMedia", ["features": [tone]])
    }

    /// A command of Chromium's own protocol.
    private func sendDevToolsCommand(_ command: String, _ parameters: [String: Any]) throws {
        try send("/goog/cdp/execute", ["cmd": command, "params": parameters])
    }

    /// What the console has got since it was asked the last time: errors of scripts, what a policy
    /// forbade, answers that were no success.
    package func consoleMessages() throws -> [String] {
        let entries = try send("/se/log", ["type": "browser"]) as? [[String: Any]] ?? []
        return entries.filter { ["SEVERE", "WARNING"].contains($0["level"] as? String ?? "") }
            .map { $0["message"] as? String ?? "\($0)" }
    }

    /// What is seen, as a PNG.
    package func screenshot() throws -> Data {
        let text = try send("/screenshot", method: "GET") as? String ?? ""
        guard let data = Data(base64Encoded: text) else {
            throw DriverError(description: "a picture that is no base64")
        }
        return data
    }
}

/// A key without a sign, by its number in WebDriver (§17.4.2).
package enum PageKey: String, Sendable {
    case tab = "\u{E004}"
    case enter = "\u{E007}"
    case escape = "\u{E00C}"
    case space = " "
    case slash = "/"
}
