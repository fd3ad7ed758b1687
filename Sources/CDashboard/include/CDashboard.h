// The dashboard's page, put into the program by the compiler. Bytes only: no logic.
#ifndef CDASHBOARD_H
#define CDASHBOARD_H

#include <stddef.h>

/// Bytes that last as long as the program.
struct cdashboard_text {
    const unsigned char *bytes;
    size_t count;
};

/// The document, in which style and script have their places.
struct cdashboard_text cdashboard_document(void);

/// The style sheet.
struct cdashboard_text cdashboard_style(void);

/// The script.
struct cdashboard_text cdashboard_script(void);

#endif
