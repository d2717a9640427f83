/* SPDX-License-Identifier: GPL-2.0 */
/* For kernels before 5.12, which have no header of this name. */
#ifndef _LIVE_LINUX_BUILDID_H
#define _LIVE_LINUX_BUILDID_H

#define BUILD_ID_SIZE_MAX	20

#endif /* _LIVE_LINUX_BUILDID_H */
