#include "client/cli/job_file_spec.h"
